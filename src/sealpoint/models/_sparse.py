def check_sparse(torch, tensor, what):
    pass
