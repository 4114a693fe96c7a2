"""What measures and proves the filter: demo, bench, faults. It imports `fraud_filter`, which never imports it."""
