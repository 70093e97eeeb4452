"""Problems stated in plain numbers, saved with witnesses that prove their bounds."""
