# needs: fc-match
# A font is found, and nothing complains.
fc-match sans > found 2>&1
if grep -qi error found; then cat found; exit 1; fi
grep -q : found
