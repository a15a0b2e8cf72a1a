"""What every format is made of: checked access, encodings, notes, losses, documents. Knows no provider."""
