"""Studies: strategies compared on synthetic problems and on a real sequence."""
