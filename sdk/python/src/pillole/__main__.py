"""``python -m pillole``."""

from .cli import main

raise SystemExit(main())
