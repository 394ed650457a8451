# needs: git
# Commits, branches, a merge, a rebase, a worktree and a clone.
export GIT_AUTHOR_NAME=job GIT_AUTHOR_EMAIL=job@localhost GIT_COMMITTER_NAME=job GIT_COMMITTER_EMAIL=job@localhost
git init -q -b main one && cd one
echo one > file && git add file && git commit -qm one
git checkout -qb side && echo two > other && git add other && git commit -qm two
git checkout -q main && echo three > third && git add third && git commit -qm three
git merge -q side -m merged && git worktree add -q ../tree side
git -C ../tree rebase -q main
git gc -q && git fsck --no-progress
git clone -q . ../two && [ "$(cat ../two/other)" = two ]
