"""Rows of data: how they are read in blocks, centred and scaled, and where learning starts.

================  ==================================================================================
``source``        :class:`Rows`, by which all rows are read, centred and scaled, block by block
``held``          which rows are held elsewhere, and the checks that arrays and rows go through
``scaling``       the centre and the unit of the rows, from one pass over blocks
``neighbours``    which points of a row are neighbours: :class:`Smooth`
``basis``         bases in which smooth rows have independent entries
``block``         :class:`Block`, the form in which the engine takes rows
``dimension``     how many components rows have
``starts``        mixing matrices to start from, made from a bounded number of rows
================  ==================================================================================
"""
