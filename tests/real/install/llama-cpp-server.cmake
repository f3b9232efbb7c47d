# Included behind llama.cpp's project(): of all its tools, the default target builds the server and what
# that links.
function(only_the_server)
    get_property(folders DIRECTORY tools PROPERTY SUBDIRECTORIES)
    foreach(folder IN LISTS folders)
        get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
        list(REMOVE_ITEM targets llama-server)
        foreach(target IN LISTS targets)
            set_property(TARGET "${target}" PROPERTY EXCLUDE_FROM_ALL TRUE)
        endforeach()
    endforeach()
endfunction()
# At the end of the directory the tools are known.
cmake_language(DEFER CALL only_the_server)
