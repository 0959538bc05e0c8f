"""The annotator's page over HTTP, on this machine unless told otherwise."""
