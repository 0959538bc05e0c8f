"""What a build leaves behind: one file that holds everything that was learned, and a cache that may be deleted."""
