//! The spoke's kube shell: commands to objects, observations to inventory.
