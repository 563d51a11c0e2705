"""Reading rows of numbers from files of many kinds, and writing maps and tables.

What the numbers of a row are (columns, an image, a volume, a surface) is called their layout.
"""

from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.data.opening import open
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
    "open",
    "read",
    "write",
    "write_table",
]
