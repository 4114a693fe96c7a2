"""What makes and checks this checkout's files: bills of materials, reference tables, locks of jars, Kubernetes'
manifests; and what reproduces docs/upstream.md. No part of the package."""
