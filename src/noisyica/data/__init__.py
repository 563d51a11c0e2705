"""Reading data: rows of numbers from files of many kinds, and what the numbers of a row are."""

from noisyica.data.layout import Images, Layout, Lines, Mesh, Volume
from noisyica.data.tables import Data, labels, read

__all__ = ["Data", "Images", "Layout", "Lines", "Mesh", "Volume", "labels", "read"]
