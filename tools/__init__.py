"""What makes this checkout's files: bills of materials, reference tables, locks of jars. No part of the package."""
