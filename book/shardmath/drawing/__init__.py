"""Drawing: SVG, and labels that find a free place."""
