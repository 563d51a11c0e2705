"""The neighbours' libraries are only imported when they are needed."""

import subprocess
import sys

PROGRAM = """
import sys
import noisyica.eeg, noisyica.neuro, noisyica.omics
assert not {"mne", "nilearn", "nibabel", "anndata"} & set(sys.modules)
"""


def test_rooms_of_the_neighbours_do_not_import_their_libraries():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
