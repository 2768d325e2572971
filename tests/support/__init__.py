"""What the tests share: a real server in a real folder, and ways to wait for conditions."""
