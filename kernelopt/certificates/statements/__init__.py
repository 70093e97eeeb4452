"""Problems as statements in plain numbers, saved with what proves their bounds."""
