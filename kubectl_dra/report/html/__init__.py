"""Reports as one self-contained HTML file: it loads nothing, sends nothing, and can be read without JavaScript."""
