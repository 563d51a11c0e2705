"""Learning: one loop for all algorithms, S <- S + step (S_hat - S), theta <- mstep(S).

================  ==================================================================================
``state``         what goes to every block of rows, what comes back, and where a run stands
``statistics``    sufficient statistics of the complete data, as sums over rows
``regression``    the regression of x on the coefficients that the statistics hold
``mstep``         the parameters of maximum likelihood given the statistics
``mixing``        a hidden mixing matrix: its draw and its moments
``expansion``     parameter expansion: the move of the coefficients after each sweep
``algorithms``    the algorithms as values: saem, sem, mcem, em, fam-em
``sweepers``      who sweeps the blocks of rows, and where these are held
``loop``          the loop
``truncation``    truncation on random boundaries, which a convergence theorem asks for
``restarts``      several runs side by side, and the choice between them
``convergence``   when to stop
``checkpoint``    a file from which an interrupted run goes on
================  ==================================================================================
"""
