"""What waves are, what they share, and how they are scheduled."""
