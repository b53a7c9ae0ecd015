"""What a method of releases in parts claims by itself."""

from __future__ import annotations

from congenial.releases.making import imaged_parts, part_method, topdown_parts


def test_methods_of_noisy_counts_have_no_error_of_their_own():
    assert imaged_parts.claims is topdown_parts.measured_claims is part_method.measured_claims
    claims = part_method.Claims(None, None)
    assert claims.error == claims.per_count == 0.0
