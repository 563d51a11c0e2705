"""Learning: one loop for all algorithms, S <- S + step (S_hat - S), theta <- mstep(S).

Here S are the average sufficient statistics, S_hat those of this iteration, and theta the
parameters.

================  ==================================================================================
``settings``      the settings of an estimator: their check, and how files hold them
``task``          all that is decided about a fit before it begins
``starting``      where the runs of a fit begin
``state``         what goes to every block of rows, what comes back, and where a run stands
``statistics``    sufficient statistics of the complete data, as sums over rows
``regression``    the regression of x on the coefficients that the statistics hold
``mstep``         the parameters of maximum likelihood given the statistics
``mixing``        priors of a hidden mixing matrix: its draw and its moments
``expansion``     parameter expansion: the move of the coefficients after each sweep
``algorithms``    the algorithms as values: saem, sem, mcem, em, fam-em
``sweepers``      where the blocks of rows are held, and how they are swept: in memory
``streamed``      rows that stay where they are, and are read in each sweep
``cluster``       rows on the workers of a cluster
``growth``        which rows take part in which iterations
``holding``       the choice of sweepers and stages
``stream``        rows that come block by block, of which only sums are kept
``loop``          the loop
``runs``          how runs begin, and how several are stacked to advance in one compiled call
``truncation``    truncation on random boundaries, which a convergence theorem asks for
``restarts``      the choice between several starts, and between several runs
``convergence``   when to stop
``watch``         progress, convergence, the callback and the checkpoint during the loop
``checkpoint``    a file from which an interrupted run goes on
``doubts``        what a user should know of a fit that its numbers do not say
``outcome``       what a fit leaves: the fitted attributes and the history
``findings``      what a fit has found, in words
``saving``        a fitted estimator as plain arrays and text
================  ==================================================================================
"""
