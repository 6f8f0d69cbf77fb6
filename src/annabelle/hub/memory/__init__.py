"""What the hub does for the memory: it hands delivered turns over, has facts learnt and tidied, and says who asks."""
