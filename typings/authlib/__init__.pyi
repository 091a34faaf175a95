"""What we use of Authlib, which says little about its types itself."""
