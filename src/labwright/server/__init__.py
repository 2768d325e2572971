"""HTTP only: permissions, requests and responses. The verbs themselves are in `labwright.services`."""
