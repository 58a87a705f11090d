//! The hub's kube shell: objects to facts, plans to commits, job kinds.
