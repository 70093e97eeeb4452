"""Methods for weights in an l_p ball: analytic updates of the weights, and the smooth dual."""
