"""Choose which pair to ask about next. Start reading at `strategy.py`."""
