"""Gene expression: noisy ICA of AnnData."""
