"""Who uses devices, and how: claims one by one, and devices counted by node, namespace, class and owner."""
