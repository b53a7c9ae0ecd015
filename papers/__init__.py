"""The two papers behind congenial, run anew: their theorems as claims, their tables as studies."""
