"""The film's colours, red, green and blue: calm, so that the mosaic is what one looks at."""

BACKGROUND = (22, 25, 30)
CAPTION_BACKGROUND = (14, 16, 20)
RAIL = (38, 43, 51)
WORDS = (226, 229, 233)
QUIET_WORDS = (139, 147, 158)
PATH = (240, 242, 245)
ANSWER = (255, 184, 77)
