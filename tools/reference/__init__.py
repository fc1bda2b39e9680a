"""The pages of ``docs/reference`` that are written from the code and the catalogue, one module for each kind of page.

``python -m tools.reference`` writes them, ``--check`` says which are not what their source makes. A page is a function
without arguments that returns its text; its module and the page have one name.
"""
