from kubectl_dra.__main__ import main

main()
