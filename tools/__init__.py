"""Tools of the project itself; none of them is part of the package."""
