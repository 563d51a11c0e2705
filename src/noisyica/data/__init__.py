"""Reading data: rows of numbers from files of many kinds, and what the numbers of a row are; and writing maps and tables."""

from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.data.reading import read
from noisyica.data.rows import Data, fingerprint, labels
from noisyica.data.writing import write, write_table

__all__ = [
    "Data",
    "Images",
    "Layout",
    "Lines",
    "Mesh",
    "Volume",
    "fingerprint",
    "labels",
    "read",
    "write",
    "write_table",
]
