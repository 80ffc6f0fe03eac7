"""Reports as one self-contained HTML file: nothing is loaded, nothing is sent, and it reads without JavaScript."""
