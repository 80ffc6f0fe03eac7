"""What an editor shows of manifests: findings, fixes, what a word means, what may stand there."""
