"""Use of devices: claims one by one, and devices counted by node, namespace, class and owner."""
