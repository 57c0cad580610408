"""What a team learns from its nights: reports, hand-over notes, documents after incidents."""
