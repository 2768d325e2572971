"""The user's project: what an approval covers, the environment, and running its code in a sandbox."""
