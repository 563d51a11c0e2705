"""Rows of data behind one door: where they are read, in blocks, how they are centred and scaled,
and where learning starts.

================  ==================================================================================
``source``        the door, :class:`Rows`: blocks of rows, centred and scaled as they are read
``scaling``       the centre and the unit of the rows, found in one pass over blocks
``block``         blocks of rows as the engine takes them, :class:`Block`
``starts``        mixing matrices to start from, made from a bounded number of rows
================  ==================================================================================
"""
