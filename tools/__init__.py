"""What makes and checks this checkout's files: bills of materials, reference tables, locks of jars, Kubernetes'
manifests. No part of the package."""
