"""What a release says about the counts behind it: posteriors, intervals, likelihoods."""
