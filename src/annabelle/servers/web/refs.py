"""How a snapshot names elements."""

from __future__ import annotations

import re

REF = re.compile(r"(?:f[0-9]{1,6})?e[0-9]{1,9}")
