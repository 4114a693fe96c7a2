"""What all HTML reports share: colours, the look of plots and pages, and how numbers are written."""
