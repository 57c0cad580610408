"""Lists of alerts: filtered, sorted, searched, counted, exported."""
