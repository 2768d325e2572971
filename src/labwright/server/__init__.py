"""HTTP only: who may call, what comes in, what goes out. What happens is in `labwright.services`."""
