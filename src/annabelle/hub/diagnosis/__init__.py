"""What may be wrong with an install, checked in a running hub or without one (DIA-01 to DIA-04)."""
