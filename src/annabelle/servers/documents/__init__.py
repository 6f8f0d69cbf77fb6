"""Documents of the workspace, read: PDF, Word, Excel, slides, mail, web pages, pictures' facts and archives' lists."""
