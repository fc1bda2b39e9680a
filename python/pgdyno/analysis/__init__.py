"""From run directories to figures, intervals, validity and a verdict; nothing here measures or draws."""
